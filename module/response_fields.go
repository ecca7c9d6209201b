package module

// jsonPlace names an object in an engine's answer of which some fields matter.
type jsonPlace uint8

const (
	placeNowhere jsonPlace = iota
	placeRoot
	placeUsage
	placeUsageDetails
	placeTimings
	placeMetaInfo
	placeChoice
	placeMessage
	placeContentBlock
	placeToolCall
	placeResponse
	placeToken
	placeTGIDetails
)

// jsonMeaning tells what to make of a field's value, by the value's type.
type jsonMeaning struct {
	number  usageCount // a number is this count
	content bool       // a string, unless empty, is generated content
	id      bool       // a string is the answer's id
	inside  jsonPlace  // an object, or each object of an array, is this place
}

// meaningOf returns what a field means, the zero jsonMeaning if it has none.
func meaningOf(at jsonPlace, key []byte) jsonMeaning {
	switch at {
	case placeRoot:
		return rootMeaning(key)
	case placeUsage, placeMetaInfo:
		return usageMeaning(key)
	case placeUsageDetails:
		if string(key) == "cached_tokens" {
			return jsonMeaning{number: countCachedTokens}
		}
	case placeTimings:
		return timingsMeaning(key)
	case placeChoice, placeMessage, placeContentBlock, placeResponse, placeToken:
		return contentMeaning(at, key)
	case placeTGIDetails:
		switch string(key) {
		case "generated_tokens":
			return jsonMeaning{number: countGeneratedTokens}
		case "input_length":
			return jsonMeaning{number: countInputLength}
		}
	}
	return jsonMeaning{}
}

func rootMeaning(key []byte) jsonMeaning {
	switch string(key) {
	case "id":
		return jsonMeaning{id: true}
	case "usage":
		return jsonMeaning{inside: placeUsage}
	case "choices":
		return jsonMeaning{inside: placeChoice}
	case "message": // Anthropic's and Ollama's
		return jsonMeaning{inside: placeMessage}
	case "delta": // Anthropic's object, the responses API's string
		return jsonMeaning{content: true, inside: placeMessage}
	case "content_block": // Anthropic
		return jsonMeaning{inside: placeContentBlock}
	case "response": // the responses API's object, Ollama's string
		return jsonMeaning{content: true, inside: placeResponse}
	case "timings": // llama.cpp
		return jsonMeaning{inside: placeTimings}
	case "content", "text", "thinking": // llama.cpp, SGLang, Ollama
		return jsonMeaning{content: true}
	case "meta_info": // SGLang
		return jsonMeaning{inside: placeMetaInfo}
	case "token": // TGI
		return jsonMeaning{inside: placeToken}
	case "details": // TGI
		return jsonMeaning{inside: placeTGIDetails}
	}
	return jsonMeaning{number: rootCount(key)}
}

func rootCount(key []byte) usageCount {
	switch string(key) {
	case "tokens_evaluated":
		return countEvaluatedTokens
	case "tokens_predicted":
		return countPredictedTokens
	case "prompt_eval_count":
		return countPromptEvalCount
	case "prompt_eval_duration":
		return countPromptEvalNS
	case "eval_count":
		return countEvalCount
	case "eval_duration":
		return countEvalNS
	case "load_duration":
		return countLoadNS
	}
	return countNone
}

func usageMeaning(key []byte) jsonMeaning {
	switch string(key) {
	case "prompt_tokens":
		return jsonMeaning{number: countPromptTokens}
	case "completion_tokens":
		return jsonMeaning{number: countCompletionTokens}
	case "cached_tokens":
		return jsonMeaning{number: countCachedTokens}
	case "prompt_tokens_details", "input_tokens_details":
		return jsonMeaning{inside: placeUsageDetails}
	case "input_tokens":
		return jsonMeaning{number: countInputTokens}
	case "output_tokens":
		return jsonMeaning{number: countOutputTokens}
	case "cache_read_input_tokens":
		return jsonMeaning{number: countCacheRead}
	case "cache_creation_input_tokens":
		return jsonMeaning{number: countCacheCreation}
	}
	return jsonMeaning{}
}

func timingsMeaning(key []byte) jsonMeaning {
	switch string(key) {
	case "cache_n":
		return jsonMeaning{number: countTimedCached}
	case "prompt_n":
		return jsonMeaning{number: countTimedPrompt}
	case "prompt_ms":
		return jsonMeaning{number: countTimedPromptMS}
	case "predicted_n":
		return jsonMeaning{number: countTimedOutput}
	case "predicted_ms":
		return jsonMeaning{number: countTimedOutputMS}
	}
	return jsonMeaning{}
}

// contentMeaning covers the places that carry generated text.
func contentMeaning(at jsonPlace, key []byte) jsonMeaning {
	switch string(key) {
	case "delta", "message":
		if at == placeChoice {
			return jsonMeaning{inside: placeMessage}
		}
	case "usage":
		if at == placeMessage || at == placeResponse {
			return jsonMeaning{inside: placeUsage}
		}
	case "id":
		return jsonMeaning{id: at == placeResponse}
	case "name": // of a tool that Anthropic's block calls
		return jsonMeaning{content: at == placeContentBlock}
	case "tool_calls":
		return jsonMeaning{inside: placeToolCall}
	case "text", "content", "reasoning_content", "reasoning", "thinking", "partial_json", "refusal":
		return jsonMeaning{content: at != placeResponse}
	}
	return jsonMeaning{}
}
