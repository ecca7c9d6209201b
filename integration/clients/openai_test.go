package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openAI(base string) openai.Client {
	return openai.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey("key"), option.WithHeader("X-Session", "s-1"))
}

// openAIChat is a chat with all kinds of messages.
var openAIChat = openai.ChatCompletionNewParams{
	Model:       "m",
	Temperature: openai.Float(0.5),
	Messages: []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("You are brief. " + strings.Repeat("Really. ", 500)),
		openai.DeveloperMessage("Use tools."),
		openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart("What is this? é \u2028"),
			openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + strings.Repeat("iVBORw0K", 5000)}),
		}),
		openai.AssistantMessage("A picture."),
		openai.ToolMessage("42", "call_1"),
	},
	Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "f", Parameters: shared.FunctionParameters{"type": "object", "properties": object{"a": object{"type": "string"}}},
	})},
}

var openAICalls = calls{
	"chat": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		return client.Chat.Completions.New(ctx, openAIChat)
	},
	"chat streamed": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		streamed := openAIChat
		streamed.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		stream := client.Chat.Completions.NewStreaming(ctx, streamed)
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			whole.AddChunk(stream.Current())
		}
		return whole.ChatCompletion, errors.Join(stream.Err(), stream.Close())
	},
	"unknown model": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		_, err := client.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: "absent"})
		var refused *openai.Error
		if !errors.As(err, &refused) {
			return nil, fmt.Errorf("no error of the API: %w", err)
		}
		return refused.RawJSON(), nil
	},
	"completion": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		return client.Completions.New(ctx, openai.CompletionNewParams{
			Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("Once upon")},
		})
	},
	"completion streamed": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		stream := client.Completions.NewStreaming(ctx, openai.CompletionNewParams{
			Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfTokens: []int64{1, 2, 3}},
		})
		var parts []openai.Completion
		for stream.Next() {
			parts = append(parts, stream.Current())
		}
		return parts, errors.Join(stream.Err(), stream.Close())
	},
	"embeddings": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		return client.Embeddings.New(ctx, openai.EmbeddingNewParams{
			Model: "m", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}},
		})
	},
	"transcription": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		return client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{
			Model: "whisper-1", File: openai.File(strings.NewReader(strings.Repeat("RIFF", 100_000)), "a.wav", "audio/wav"),
		})
	},
	"models": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		return client.Models.List(ctx)
	},
	"responses": openAIResponses,
	"response streamed": func(ctx context.Context, base string) (any, error) {
		client := openAI(base)
		stream := client.Responses.NewStreaming(ctx, openAIResponse("stream", ""))
		var text strings.Builder
		for stream.Next() {
			event := stream.Current()
			text.WriteString(event.Type + " " + event.Delta + "\n")
			if event.Type == "response.created" { // while it goes on
				if _, err := client.Responses.Cancel(ctx, event.Response.ID); err != nil {
					return nil, err
				}
			}
		}
		return text.String(), errors.Join(stream.Err(), stream.Close())
	},
}

func openAIResponse(input, previous string) responses.ResponseNewParams {
	params := responses.ResponseNewParams{
		Model: "m", Instructions: openai.String("Be brief."), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(input)},
	}
	if previous != "" {
		params.PreviousResponseID = openai.String(previous)
	}
	return params
}

// openAIResponses makes a conversation of stored responses, retrieves and
// deletes them.
func openAIResponses(ctx context.Context, base string) (any, error) {
	client := openAI(base)
	var seen []any
	previous := ""
	for turn := range 5 {
		response, err := client.Responses.New(ctx, openAIResponse(fmt.Sprint("turn ", turn), previous))
		if err != nil {
			return nil, err
		}
		again, err := client.Responses.Get(ctx, response.ID, responses.ResponseGetParams{})
		if err != nil {
			return nil, err
		}
		items, err := client.Responses.InputItems.List(ctx, response.ID, responses.InputItemListParams{})
		if err != nil {
			return nil, err
		}
		seen = append(seen, response, again, items.Data)
		previous = response.ID
	}
	return seen, client.Responses.Delete(ctx, previous)
}
