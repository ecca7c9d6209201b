package tokenizer

// mediaTokens is what a part of some type that holds media counts as.
var mediaTokens = map[string]int{
	"image_url": imageTokens, "image": imageTokens, "input_image": imageTokens,
	"audio_url": audioTokens, "audio": audioTokens, "input_audio": audioTokens,
	"video_url": videoTokens, "video": videoTokens, "input_video": videoTokens,
	"file": fileTokens, "input_file": fileTokens,
}

// mediaRanks are the fields that hold media, the more telling ones higher.
var mediaRanks = map[string]int{
	"id": 1, "file_id": 2, "url": 3, "file_url": 4, "data": 5, "file_data": 6,
	"image_url": 7, "audio_url": 7, "video_url": 7, "input_audio": 7,
	"image": 8, "audio": 8, "video": 8, "file": 8, "source": 8,
}

// mediaIn returns the field of an object that holds media.
func (r *reader) mediaIn(v value) (found value) {
	best := 1
	for key, val := range r.fields(v) {
		if rank := mediaRanks[string(key)]; rank >= best && !r.empty(val) {
			found, best = val, rank
		}
	}
	return found
}

// mediaPart writes an image, audio, video or file: a string (base64, URL or id), an
// object that holds one, or an array of these.
func (r *reader) mediaPart(v value, tokens int) {
	switch r.kind(v) {
	case kindNull:
	case kindString:
		r.media(r.raw(v), tokens)
	case kindArray:
		for e := range r.elements(v) {
			r.mediaPart(e, tokens)
		}
	default:
		if held := r.mediaIn(v); held != absent {
			r.mediaPart(held, tokens)
			return
		}
		r.tag(tagJSON)
		r.json(r.raw(v))
	}
}
