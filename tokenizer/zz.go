package tokenizer
func Decode(e string, b []byte, n int) ([]byte, bool, error) { return b, false, nil }
