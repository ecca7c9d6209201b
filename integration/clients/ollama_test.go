package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/ollama/ollama/api"
)

func ollama(base string) *api.Client {
	parsed, err := url.Parse(base)
	if err != nil {
		panic(err) // made of an address that was listened on
	}
	return api.NewClient(parsed, http.DefaultClient)
}

func ollamaChat(ctx context.Context, base string, stream *bool) (any, error) {
	var parts []api.ChatResponse
	err := ollama(base).Chat(ctx, &api.ChatRequest{
		Model: "m", Stream: stream, Options: map[string]any{"num_predict": 5},
		Messages: []api.Message{
			{Role: "system", Content: strings.Repeat("Be brief. ", 500)},
			{Role: "user", Content: "What is this?", Images: []api.ImageData{[]byte(strings.Repeat("PNG", 5000))}},
		},
	}, func(part api.ChatResponse) error {
		parts = append(parts, part)
		return nil
	})
	return parts, err
}

var no = false

var ollamaCalls = calls{
	"chat":       func(ctx context.Context, base string) (any, error) { return ollamaChat(ctx, base, nil) },
	"chat whole": func(ctx context.Context, base string) (any, error) { return ollamaChat(ctx, base, &no) },
	"generate": func(ctx context.Context, base string) (any, error) {
		var parts []api.GenerateResponse
		err := ollama(base).Generate(ctx, &api.GenerateRequest{Model: "m", Prompt: "Once upon", System: "Be brief."}, func(part api.GenerateResponse) error {
			parts = append(parts, part)
			return nil
		})
		return parts, err
	},
	"embed": func(ctx context.Context, base string) (any, error) {
		return ollama(base).Embed(ctx, &api.EmbedRequest{Model: "m", Input: []string{"a", "b"}})
	},
	"pull": func(ctx context.Context, base string) (any, error) {
		var parts []api.ProgressResponse
		err := ollama(base).Pull(ctx, &api.PullRequest{Model: "m"}, func(part api.ProgressResponse) error {
			parts = append(parts, part)
			return nil
		})
		return parts, err
	},
	"blob": func(ctx context.Context, base string) (any, error) {
		err := ollama(base).CreateBlob(ctx, "sha256:1", strings.NewReader(strings.Repeat("GGUF", 1_000_000)))
		return "uploaded a blob", err
	},
	"lists": func(ctx context.Context, base string) (any, error) {
		client := ollama(base)
		models, err1 := client.List(ctx)
		shown, err2 := client.Show(ctx, &api.ShowRequest{Model: "m"})
		version, err3 := client.Version(ctx)
		return []any{models, shown, version}, errors.Join(err1, err2, err3, client.Heartbeat(ctx))
	},
	"unknown model": func(ctx context.Context, base string) (any, error) {
		err := ollama(base).Chat(ctx, &api.ChatRequest{Model: "absent"}, func(api.ChatResponse) error { return nil })
		if err == nil {
			return nil, errors.New("no error of the API")
		}
		return fmt.Sprintf("%T: %v", err, err), nil
	},
}
