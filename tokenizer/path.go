package tokenizer

import "strings"

// route is what a path alone tells.
type route struct {
	api        API
	kind       Kind
	stream     bool
	model      string
	responseID string
}

// endpoints lists the ends of known paths; what comes before them is a prefix of the
// deployment. Of two that fit, the earlier one counts.
var endpoints = []struct {
	end  string
	api  API
	kind Kind
}{
	{"/chat/completions", Chat, Generate},
	{"/completions", Completions, Generate},
	{"/completion", Completions, Generate},
}

func matchPath(path string) (rt route) {
	path = strings.TrimRight(path, "/")
	for _, e := range endpoints {
		if strings.HasSuffix(path, e.end) {
			rt.api, rt.kind = e.api, e.kind
			break
		}
	}
	rt.model = segmentAfter(path, "/deployments/")
	return rt
}

// segmentAfter returns the path segment that follows the last occurrence of marker.
func segmentAfter(path, marker string) string {
	i := strings.LastIndex(path, marker)
	if i < 0 {
		return ""
	}
	segment, _, _ := strings.Cut(path[i+len(marker):], "/")
	return segment
}
