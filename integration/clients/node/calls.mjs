// Makes calls with the official client and prints what it made of the answers.
import OpenAI, { toFile } from 'openai';

const client = new OpenAI({ baseURL: process.argv[2] + '/v1', apiKey: 'key', timeout: 10_000 });
const messages = [
  { role: 'system', content: 'You are brief. '.repeat(500) },
  { role: 'user', content: [{ type: 'text', text: 'Grüße \u2028 "quoted"' }] },
];

const calls = {
  chat: () => client.chat.completions.create({ model: 'm', messages }),
  chatStreamed: async () => {
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true, stream_options: { include_usage: true } });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
  },
  chatStreamHelper: async () => (await client.chat.completions.stream({ model: 'm', messages }).finalChatCompletion()).choices,
  unknownModel: async () => {
    try {
      await client.chat.completions.create({ model: 'absent', messages });
    } catch (error) {
      return [error.constructor.name, error.status, error.message];
    }
    throw new Error('no error of the API');
  },
  completion: () => client.completions.create({ model: 'm', prompt: ['a', 'b'] }),
  embeddings: () => client.embeddings.create({ model: 'm', input: [[1, 2], [3]], encoding_format: 'float' }),
  transcription: async () => client.audio.transcriptions.create({ model: 'whisper-1', file: await toFile(Buffer.alloc(300_000, 'RIFF'), 'a.wav') }),
  models: async () => (await client.models.list()).data,
  responses: async () => {
    const seen = [];
    let previous;
    for (let turn = 0; turn < 4; turn++) {
      const response = await client.responses.create({ model: 'm', input: `turn ${turn} of node`, previous_response_id: previous });
      seen.push(response.output_text, (await client.responses.retrieve(response.id)).output_text, (await client.responses.cancel(response.id)).status);
      previous = response.id;
    }
    await client.responses.delete(previous);
    return seen;
  },
  responseStreamed: async () => {
    const types = [];
    const stream = await client.responses.create({ model: 'm', input: 'streamed by node', stream: true });
    for await (const event of stream) types.push(event.type);
    return types;
  },
  leaving: async () => {
    const stream = await client.chat.completions.create({ model: 'm', messages, stream: true });
    for await (const chunk of stream) break; // aborts the request
    return 'left';
  },
};

for (const [name, call] of Object.entries(calls)) {
  console.log(name, JSON.stringify(await call()));
}
