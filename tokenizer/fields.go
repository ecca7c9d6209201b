package tokenizer

// field is a field of a request's top level that means something to us.
type field uint8

const (
	fModel field = iota + 1
	fAdapter
	fSalt
	fExtraKey // SGLang's further name space of the cache
	fStream
	fMaxTokens
	fChoices
	fBestOf
	fOptions // nested parameters: options, parameters, sampling_params

	fTemplateOptions // what changes how a template renders, in one of optionFields
	fTools
	fFunctions
	fDocuments
	fSystem
	fMessages
	fPrompt
	fSuffix
	fInput
	fInputs
	fTokens
	fContext
	fImages
	fAudio
	fVideo
	fEmbeds
	fRaw

	fInputPrefix
	fInputSuffix
	fInputExtra
	fQuery
	fQueries
	fTexts
	fText1
	fText2

	fInstructions
	fPreviousResponse
	fConversation
	fMaxOutput // max_output_tokens, a mark of the responses API
	fReasoning
	fOutputConfig // Anthropic's
	fCacheKey
	fMetadata
	fSession

	numFields
)

// fieldNames lists the spellings of each field over all APIs. Names that mean
// different things in different APIs have a field of their own.
var fieldNames = map[string]field{
	"model":                 fModel,
	"lora_path":             fAdapter,
	"adapter_id":            fAdapter,
	"cache_salt":            fSalt,
	"extra_key":             fExtraKey,
	"stream":                fStream,
	"max_tokens":            fMaxTokens,
	"max_completion_tokens": fMaxTokens,
	"n_predict":             fMaxTokens,
	"max_new_tokens":        fMaxTokens,
	"n":                     fChoices,
	"best_of":               fBestOf,
	"options":               fOptions,
	"parameters":            fOptions,
	"sampling_params":       fOptions,

	"tools":     fTools,
	"functions": fFunctions,
	"documents": fDocuments,
	"system":    fSystem,
	"messages":  fMessages,

	"prompt":     fPrompt,
	"suffix":     fSuffix,
	"input":      fInput,
	"inputs":     fInputs,
	"text":       fInputs,
	"text_input": fInputs,
	"content":    fInputs,
	"input_ids":  fTokens,
	"token_ids":  fTokens,
	"context":    fContext,
	"images":     fImages,
	"image_data": fImages,
	"audio_data": fAudio,
	"video_data": fVideo,
	"raw":        fRaw,

	"prompt_embeds": fEmbeds,

	"input_prefix": fInputPrefix,
	"input_suffix": fInputSuffix,
	"input_extra":  fInputExtra,
	"query":        fQuery,
	"queries":      fQueries,
	"texts":        fTexts,
	"items":        fTexts,
	"text_1":       fText1,
	"data_1":       fText1,
	"text_2":       fText2,
	"data_2":       fText2,

	"instructions":         fInstructions,
	"previous_response_id": fPreviousResponse,
	"conversation":         fConversation,
	"max_output_tokens":    fMaxOutput,
	"reasoning":            fReasoning,
	"output_config":        fOutputConfig,
	"prompt_cache_key":     fCacheKey,
	"metadata":             fMetadata,
	"session_params":       fSession,
}

// optionFields change how a template renders, and with it the cached prompt.
var optionFields = [...]string{
	optionEffort: "reasoning_effort",
	1:            "chat_template",
	2:            "chat_template_kwargs",
	3:            "mm_processor_kwargs",
	4:            "template",
	5:            "think",
	6:            "lora",         // llama.cpp's adapters and their scales
	7:            "lora_request", // TensorRT-LLM's adapter
}

const optionEffort = 0
