package tokenizer

import "github.com/zeebo/xxh3"

// Hint returns the key under which the residency left by a request with some session
// id can be found again by the next one. It matches exactly or not at all.
func Hint(secret uint64, tenant, model, value string) uint64 {
	return saltedKey(secret, 'h', tenant, model, value)
}

// ResponseKey returns the key of the id of a stored response or conversation, as it
// stands in Prompt.ResponseID.
func ResponseKey(secret uint64, tenant, id string) uint64 {
	return saltedKey(secret, 'r', tenant, "", id)
}

func saltedKey[T string | []byte](secret uint64, use byte, a, b string, c T) uint64 {
	var buf [256]byte
	out := append(buf[:0], use)
	out = appendSized(out, a)
	out = appendSized(out, b)
	out = appendSized(out, c)
	return xxh3.HashSeed(out, secret)
}

// references finds what a request names of earlier ones.
func (r *reader) references() {
	r.hint('h', r.top[fCacheKey])
	r.hint('s', r.get(r.top[fSession], "id"))
	r.hint('s', r.get(r.top[fSession], "session_id"))
	if r.p.API == Messages {
		r.hint('u', r.get(r.top[fMetadata], "user_id"))
	}
	if r.p.API != Responses {
		return
	}
	id := r.str(r.top[fPreviousResponse])
	if len(id) == 0 {
		id = r.str(r.top[fConversation])
	}
	if len(id) == 0 {
		id = r.str(r.get(r.top[fConversation], "id"))
	}
	if len(id) > 0 {
		r.p.ResponseID, r.p.HasResponseID = saltedKey(r.in.Secret, 'r', r.in.Tenant, "", id), true
	}
}

func (r *reader) hint(use byte, v value) {
	if id := r.str(v); len(id) > 0 {
		r.p.Hints = append(r.p.Hints, saltedKey(r.in.Secret, use, r.in.Tenant, r.p.Model, id))
	}
}
