package tokenizer

// Reason is why no prompt could be read from a request. It is an error whose text is
// short, constant and fit to be a metric label.
type Reason string

const (
	NoBody     Reason = "no_body"     // no body, or only white space
	NotJSON    Reason = "not_json"    // multipart, binary, or not a JSON object
	Malformed  Reason = "malformed"   // broken JSON
	UnknownAPI Reason = "unknown_api" // JSON in which no prompt is recognised
	NoPrompt   Reason = "no_prompt"   // a known API whose prompt is empty
	// BadEncoding is wrapped by the errors of Decode: broken data or an unknown coding.
	BadEncoding Reason = "bad_encoding"
)

func (r Reason) Error() string { return string(r) }
