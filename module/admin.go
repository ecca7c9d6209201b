package module

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

func init() {
	caddy.RegisterModule(new(adminCacheAware))
}

// Paths of the admin API.
const (
	statusPath    = "/cache_aware/"
	decisionsPath = "/cache_aware/decisions"
	explainPath   = "/cache_aware/explain"
	residencyPath = "/cache_aware/residency"
)

// adminCacheAware is a module that provides the /cache_aware/ endpoints of the
// Caddy admin API: what the policies know of replicas, how they decided lately
// and would decide on a request, and how to make them forget. Caddy makes a new
// one for every configuration, so it keeps nothing of its own.
type adminCacheAware struct{}

// CaddyModule returns the Caddy module information.
func (*adminCacheAware) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "admin.api.cache_aware",
		New: func() caddy.Module { return new(adminCacheAware) },
	}
}

// Routes returns the endpoints.
func (*adminCacheAware) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: statusPath, Handler: endpoint(serveStatus, http.MethodGet, http.MethodHead)},
		{Pattern: decisionsPath, Handler: endpoint(serveDecisions, http.MethodGet, http.MethodHead)},
		{Pattern: explainPath, Handler: endpoint(serveExplain, http.MethodPost)},
		{Pattern: residencyPath, Handler: endpoint(serveForget, http.MethodDelete)},
		{Pattern: recordPath, Handler: caddy.AdminHandlerFunc(serveRecord)},
	}
}

// endpoint answers requests of the given methods with what serve returns, as
// JSON.
func endpoint(serve func(r *http.Request) (any, error), methods ...string) caddy.AdminHandler {
	return caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if !slices.Contains(methods, r.Method) {
			return methodNotAllowed(w, r, methods...)
		}
		answer, err := serve(r)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(answer)
	})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request, methods ...string) error {
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return caddy.APIError{
		HTTPStatus: http.StatusMethodNotAllowed,
		Err:        fmt.Errorf("method not allowed: %.20s", r.Method),
	}
}

// statusAnswer is what GET /cache_aware/ answers.
type statusAnswer struct {
	States []Status `json:"states"`
}

func serveStatus(r *http.Request) (any, error) {
	if r.URL.Path != statusPath {
		return nil, notFound("no such endpoint: %.100q", r.URL.Path)
	}
	return statusAnswer{Statuses()}, nil
}

// forgetAnswer is what DELETE /cache_aware/residency answers.
type forgetAnswer struct {
	// Forgotten is the number of replicas whose residency was forgotten.
	Forgotten int `json:"forgotten"`
}

// serveForget empties what is believed to be cached, for when an operator
// knows that it is not. A parameter that is misspelt or left empty must not
// make it forget all.
func serveForget(r *http.Request) (any, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("parsing query: %w", err)
	}
	for name, values := range query {
		if name != "state" && name != "replica" || len(values) != 1 || values[0] == "" {
			return nil, badRequest("want one replica, one state, or neither: %.100q", name)
		}
	}
	chosen, err := chosenStates(query.Get("state"))
	if err != nil {
		return nil, err
	}
	replica := query.Get("replica")
	var answer forgetAnswer
	for _, s := range chosen {
		answer.Forgotten += s.forget(replica)
	}
	if replica != "" && answer.Forgotten == 0 {
		return nil, notFound("no such replica: %.100q", replica)
	}
	return answer, nil
}

// forget forgets what one replica, or each without an address, holds, and
// returns how many there were.
func (s *state) forget(replica string) (forgotten int) {
	addresses := []string{replica}
	if replica == "" {
		addresses = nil
		for _, known := range s.fleet.Status(time.Now()) {
			addresses = append(addresses, known.Replica)
		}
	}
	for _, address := range addresses {
		if s.fleet.Forget(address) {
			forgotten++
		}
	}
	return forgotten
}

// chosenStates returns the state of a name, or all without one.
func chosenStates(name string) ([]namedState, error) {
	all := runningStates()
	if name == "" {
		return all, nil
	}
	i := slices.IndexFunc(all, func(s namedState) bool { return s.name == name })
	if i < 0 {
		return nil, notFound("no such state: %.100q", name)
	}
	return all[i : i+1], nil
}

func badRequest(format string, value any) error {
	return caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf(format, value)}
}

func notFound(format string, value string) error {
	return caddy.APIError{HTTPStatus: http.StatusNotFound, Err: fmt.Errorf(format, value)}
}

// Interface guard
var _ caddy.AdminRouter = (*adminCacheAware)(nil)
