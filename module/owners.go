package module

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
	"github.com/seed5db0839e/caddy-cache-aware/tokenizer"
)

// reasonOwner: the replica keeps the stored response that the request names.
const reasonOwner selection.Reason = "owner"

// ownersPerGeneration bounds what owners remember: between this many ids and
// twice as many, those used last, in about 10 MB.
const ownersPerGeneration = 64 << 10

// owners remember which replica keeps which stored response or conversation.
// Engines keep them to themselves, so that any other would answer 404. The
// zero value is empty and ready; methods are safe for concurrent use.
type owners struct {
	mu            sync.Mutex
	recent, older map[uint64]string // address of the replica by tokenizer.ResponseKey
}

func (o *owners) set(key uint64, replica string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.recent) >= ownersPerGeneration || o.recent == nil {
		o.older, o.recent = o.recent, make(map[uint64]string)
	}
	o.recent[key] = replica
}

func (o *owners) get(key uint64) (replica string, ok bool) {
	o.mu.Lock()
	replica, ok = o.recent[key]
	if ok {
		o.mu.Unlock()
		return replica, true
	}
	replica, ok = o.older[key]
	o.mu.Unlock()
	if ok {
		o.set(key, replica)
	}
	return replica, ok
}

// reference is what a call has to do with stored responses.
type reference struct {
	owners  *owners
	named   uint64 // key of the response or conversation that the request names
	names   bool   // it names one
	issues  bool   // its answer brings the id of a new one
	secret  uint64
	tenant  string
	replica string // that the attempt goes to
}

func (c *CacheAware) reference(r *http.Request, tenant string, prompt *tokenizer.Prompt) reference {
	return reference{
		owners: &c.state.owners,
		named:  prompt.ResponseID,
		names:  prompt.HasResponseID,
		issues: r.Method == http.MethodPost && (prompt.API == tokenizer.Responses && prompt.Kind != tokenizer.NoWork ||
			strings.HasSuffix(r.URL.Path, "/conversations")),
		secret: c.state.secret,
		tenant: tenant,
	}
}

// owner returns the candidate that keeps what the call names, unless it has
// failed this call already.
func (k *call) owner(candidates []string) (string, bool) {
	if !k.stored.names {
		return "", false
	}
	replica, known := k.stored.owners.get(k.stored.named)
	return replica, known && slices.Contains(candidates, replica) && !slices.Contains(k.request.Avoid, replica)
}

// served notes that the replica knows what the request named.
func (f *reference) served() {
	if f.names {
		f.owners.set(f.named, f.replica)
	}
}

// issued notes that the replica has given out an id.
func (f *reference) issued(id string) {
	if f.issues {
		f.owners.set(tokenizer.ResponseKey(f.secret, f.tenant, id), f.replica)
	}
}
