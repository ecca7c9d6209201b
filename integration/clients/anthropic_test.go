package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func anthropicClient(base string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(base), option.WithAPIKey("key"))
}

// anthropicChat is a chat with all kinds of blocks.
var anthropicChat = anthropic.MessageNewParams{
	Model:     "m",
	MaxTokens: 100,
	System: []anthropic.TextBlockParam{{
		Text: "You are brief. " + strings.Repeat("Really. ", 500), CacheControl: anthropic.NewCacheControlEphemeralParam(),
	}},
	Messages: []anthropic.MessageParam{
		anthropic.NewUserMessage(anthropic.NewTextBlock("What is this?"), anthropic.NewImageBlockBase64("image/png", strings.Repeat("iVBORw0K", 5000))),
		anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("toolu_1", object{"a": 1}, "f")),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock("toolu_1", "42", false)),
	},
	Metadata: anthropic.MetadataParam{UserID: anthropic.String("user-1")},
}

var anthropicCalls = calls{
	"message": func(ctx context.Context, base string) (any, error) {
		client := anthropicClient(base)
		return client.Messages.New(ctx, anthropicChat)
	},
	"message streamed": func(ctx context.Context, base string) (any, error) {
		client := anthropicClient(base)
		stream := client.Messages.NewStreaming(ctx, anthropicChat)
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				return nil, err
			}
		}
		return whole, errors.Join(stream.Err(), stream.Close())
	},
	"count tokens": func(ctx context.Context, base string) (any, error) {
		client := anthropicClient(base)
		return client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: "m", Messages: anthropicChat.Messages})
	},
	"unknown model": func(ctx context.Context, base string) (any, error) {
		client := anthropicClient(base)
		_, err := client.Messages.New(ctx, anthropic.MessageNewParams{Model: "absent", MaxTokens: 1, Messages: anthropicChat.Messages})
		var refused *anthropic.Error
		if !errors.As(err, &refused) {
			return nil, fmt.Errorf("no error of the API: %w", err)
		}
		return refused.RawJSON(), nil
	},
}
