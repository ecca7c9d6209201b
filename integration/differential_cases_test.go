package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// chatBody is a chat of about so many bytes.
func chatBody(size int) string {
	body, err := json.Marshal(map[string]any{
		"model": "simulated", "stream": true, "temperature": 0.5,
		"messages": []map[string]string{{"role": "user", "content": text(size, size/4)}},
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func setHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// withTrailer announces a trailer and sets it at the body's end.
func withTrailer(r *http.Request) {
	r.Trailer = http.Header{"X-Checksum": nil}
	r.ContentLength = -1
	r.Body = &endingBody{r.Body, func() { r.Trailer.Set("X-Checksum", "42") }}
}

type endingBody struct {
	io.ReadCloser
	atEnd func()
}

func (b *endingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.atEnd()
	}
	return n, err
}

var plainExchanges = map[string]exchange{
	"chat":           {body: chatBody(2000)},
	"chat chunked":   {body: chatBody(2000), chunked: true},
	"long chat":      {body: chatBody(40_000)},
	"empty":          {},
	"empty chunked":  {chunked: true},
	"not JSON":       {body: "x"},
	"broken JSON":    {body: `{"model":"m","messages":[{"role":"user","content":"a`},
	"invalid UTF-8":  {body: "{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\xc3\"}]}"},
	"zero bytes":     {body: strings.Repeat("\x00", 5000)},
	"deep JSON":      {body: strings.Repeat(`{"a":[`, 10_000)},
	"duplicate keys": {body: `{"prompt":"a", "prompt" : "b","prompt":null}`},
	"byte order mark": {
		body: "\xef\xbb\xbf" + chatBody(300),
	},
	"other paths":       {path: "/llm/v1/responses?x=1&y=%20", body: `{"input":"hi","previous_response_id":"resp_1"}`},
	"retrieval":         {method: http.MethodGet, path: "/v1/responses/resp_1"},
	"deletion":          {method: http.MethodDelete, path: "/v1/responses/resp_1"},
	"cancelling":        {path: "/v1/responses/resp_1/cancel"},
	"get":               {method: http.MethodGet, path: "/v1/models"},
	"get with body":     {method: http.MethodGet, body: chatBody(500)},
	"head":              {method: http.MethodHead, path: "/v1/models"},
	"options":           {method: http.MethodOptions},
	"put":               {method: http.MethodPut, body: chatBody(500)},
	"delete with body":  {method: http.MethodDelete, body: chatBody(500)},
	"method of its own": {method: "PURGE", body: chatBody(500)},
	"headers": {body: chatBody(500), change: func(r *http.Request) {
		r.Header = http.Header{
			marker: {"1"}, "Authorization": {"Bearer k"}, "X-Session": {"s-1", "s-2"}, "Cookie": {"a=1; b=2"},
			"Accept-Encoding": {"br"}, "Idempotency-Key": {"i"}, "X-Long": {strings.Repeat("x", 20_000)},
			"Connection": {"X-Hop"}, "X-Hop": {"1"}, "X-Forwarded-For": {"10.1.2.3"}, "User-Agent": {""},
		}
	}},
	"expect continue": {body: chatBody(2000), change: setHeader("Expect", "100-continue")},
	"trailer":         {body: chatBody(2000), chunked: true, change: withTrailer},
	"incremental":     {body: chatBody(2000), chunked: true, change: setHeader("Incremental", "?1")},
	"slow":            {body: chatBody(2000) + strings.Repeat(" ", 100_000), chunked: true, pause: 20 * time.Millisecond},
	"slow, sized":     {body: chatBody(60_000), pause: 20 * time.Millisecond},
}

// coded is a body in a content coding.
func coded(coding, body string) exchange {
	return exchange{body: body, change: setHeader("Content-Encoding", coding)}
}

// encode undoes what tokenizer.Decode does.
func encode(coding, text string) string {
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "br":
		w = brotli.NewWriter(&out)
	case "zstd":
		encoder, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		w = encoder
	}
	if _, err := io.WriteString(w, text); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

var codedExchanges = map[string]exchange{
	"gzip":         coded("gzip", encode("gzip", chatBody(20_000))),
	"zstd":         coded("zstd", encode("zstd", chatBody(20_000))),
	"br":           coded("br", encode("br", chatBody(20_000))),
	"two codings":  coded("gzip, br", encode("br", encode("gzip", chatBody(20_000)))),
	"wrong coding": coded("gzip", chatBody(2000)),
	"own coding":   coded("rot13", chatBody(2000)),
	"half a gzip":  coded("gzip", encode("gzip", chatBody(20_000))[:3000]),
	"gzip bomb":    coded("gzip", encode("gzip", strings.Repeat(" ", 8<<20))),
	"zstd bomb":    coded("zstd", encode("zstd", strings.Repeat(" ", 8<<20))),
	"br bomb":      coded("br", encode("br", strings.Repeat(" ", 8<<20))),
	"audio":        uploadedFile("/v1/audio/transcriptions", "audio.wav", 40_000),
	"long audio":   uploadedFile("/v1/audio/transcriptions", "audio.wav", 300_000),
	"form, image":  uploadedFile("/v1/images/edits", "image.png", 40_000),
	"image":        {path: "/v1/images/variations", body: "\x89PNG\r\n\x1a\n" + strings.Repeat("\x01\xfe", 3000), change: setHeader("Content-Type", "image/png")},
}

// uploadedFile is a form with a file, as transcriptions are asked for.
func uploadedFile(path, name string, size int) exchange {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.SetBoundary("boundary") // valid
	_ = form.WriteField("model", "whisper")
	file, _ := form.CreateFormFile("file", name) // writing to memory does not fail
	_, _ = io.WriteString(file, strings.Repeat("RIFF", size/4))
	_ = form.Close()
	return exchange{path: path, body: body.String(), change: setHeader("Content-Type", form.FormDataContentType())}
}

var longExchanges = map[string]exchange{
	"as long as max_prompt":          {body: fmt.Sprintf("%*s", maxPrompt, chatBody(1000))},
	"as long as max_prompt, chunked": {body: fmt.Sprintf("%*s", maxPrompt, chatBody(1000)), chunked: true},
	"over max_prompt":                {body: chatBody(300_000)},
	"over max_prompt, chunked":       {body: chatBody(300_000), chunked: true},
	"over max_prompt, trailer":       {body: chatBody(300_000), chunked: true, change: withTrailer},
	"over max_prompt, gzip":          coded("gzip", encode("gzip", chatBody(500_000))),
	"over max_prompt, expect":        {body: chatBody(300_000), change: setHeader("Expect", "100-continue")},
	"far over max_prompt":            {body: chatBody(20 << 20)},
}

func maxSize(n int) string { return fmt.Sprintf("request_body {\nmax_size %d\n}", n) }

var proxyExchanges = map[string]exchange{
	"buffered":          {body: chatBody(20_000), handler: "request_buffers 1MiB"},
	"buffered, chunked": {body: chatBody(20_000), chunked: true, handler: "request_buffers 1MiB"},
	"buffered in part":  {body: chatBody(20_000), handler: "request_buffers 1KiB"},
	"buffered, over":    {body: chatBody(300_000), chunked: true, handler: "request_buffers 1MiB"},
	"buffered, incremental": {
		body: chatBody(20_000), handler: "request_buffers 1MiB", change: setHeader("Incremental", "?1"), wantStatus: 501,
	},
	"buffered without end":  {body: chatBody(300_000), chunked: true, handler: "request_buffers unlimited"},
	"max_size kept":         {body: strings.Repeat("x", 2000), site: maxSize(2000)},
	"max_size kept, chunks": {body: strings.Repeat("x", 2000), chunked: true, site: maxSize(2000)},
	"max_size":              {body: chatBody(3000), site: maxSize(2000), wantStatus: 413},
	"max_size, chunked":     {body: chatBody(3000), chunked: true, site: maxSize(2000), wantStatus: 413},
	"max_size over max_prompt": {
		body: chatBody(300_000), chunked: true, site: maxSize(200_000), wantStatus: 413,
	},
	"max_size, buffered": {
		body: chatBody(3000), chunked: true, site: maxSize(2000), handler: "request_buffers 1MiB", wantStatus: 413,
	},
	"body read by a placeholder": {body: chatBody(3000), site: "vars seen {http.request.body}"},
	"body replaced":              {body: chatBody(3000), site: "request_body {\nset `{\"prompt\":\"another\"}`\n}"},
	"header_up":                  {body: chatBody(3000), handler: "header_up Host {upstream_hostport}\nheader_up X-Up 1\nheader_up -Content-Type"},
	"rewritten":                  {body: chatBody(3000), handler: "rewrite /generate?a=b"},
	"rewritten to get":           {body: chatBody(3000), handler: "method GET"},
	"compression off":            {body: chatBody(3000), handler: "transport http {\ncompression off\n}"},
	"nested in header":           {body: chatBody(3000), policy: "lb_policy header X-Absent {\nfallback %s\n}"},
	"nested in query":            {body: chatBody(300_000), chunked: true, policy: "lb_policy query absent {\nfallback %s\n}"},
	"no idle timeout": {
		body: chatBody(3000), chunked: true, global: "servers {\ntimeouts {\nread_body_idle -1s\n}\n}",
	},
}

const postRetries = `
	lb_retries 4
	lb_retry_match {
		method POST
	}
	lb_retry_match {
		expression "{rp.status_code} == 503"
	}
`

var retryExchanges = map[string]exchange{
	"retry after dial errors":          {body: chatBody(20_000), dead: 3, handler: postRetries, replayed: true},
	"retry after dial errors, chunked": {body: chatBody(20_000), chunked: true, dead: 3, handler: postRetries, replayed: true},
	"retry after dial errors, long":    {body: chatBody(300_000), dead: 3, handler: postRetries, replayed: true},
	"retry after the header":           {body: chatBody(20_000), failures: []failure{dropAtOnce}, handler: postRetries, replayed: true},
	"retry after the body":             {body: chatBody(20_000), failures: []failure{dropAtEnd, dropAtEnd}, handler: postRetries, replayed: true},
	"retry after the body, chunked":    {body: chatBody(20_000), chunked: true, failures: []failure{dropAtEnd}, handler: postRetries, replayed: true},
	"retry after the body, buffered":   {body: chatBody(20_000), failures: []failure{dropAtEnd}, handler: postRetries + "request_buffers 1MiB"},
	"retry after the body, header_up":  {body: chatBody(20_000), failures: []failure{dropAtEnd}, handler: postRetries + "header_up X-Up 1", replayed: true},
	"retry after 503":                  {body: chatBody(20_000), failures: []failure{unavailable, unavailable}, handler: postRetries, replayed: true},
	"retry after 503, chunked":         {body: chatBody(20_000), chunked: true, failures: []failure{unavailable}, handler: postRetries, replayed: true},
	"retry of a get":                   {method: http.MethodGet, failures: []failure{dropAtEnd}, handler: "lb_retries 4", replayed: true},
	"fallback in handle_errors":        {body: chatBody(20_000), dead: 2, after: "handle_errors {\nreverse_proxy %s\n}"},
	"fallback, chunked":                {body: chatBody(20_000), chunked: true, dead: 2, after: "handle_errors {\nreverse_proxy %s\n}"},
	"fallback, over max_prompt":        {body: chatBody(300_000), dead: 2, after: "handle_errors {\nreverse_proxy %s\n}"},
	"fallback to the same policy": {
		body: chatBody(20_000), chunked: true, dead: 2, handler: postRetries,
		after: "handle_errors {\nreverse_proxy %s {\nlb_policy cache_aware\n}\n}",
	},
}
