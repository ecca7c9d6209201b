package module

import (
	"testing"

	"github.com/seed5db0839e/caddy-cache-aware/selection"
)

func TestFailureOf(t *testing.T) {
	tests := []struct {
		status int
		prompt bool
		want   selection.Failure
		failed bool
	}{
		{200, true, 0, false},
		{304, false, 0, false},
		{400, true, selection.FailureRequest, true},
		{404, true, selection.FailureModel, true},
		{404, false, selection.FailureRequest, true},
		{401, false, selection.FailureModel, true},
		{429, true, selection.FailureModel, true},
		{503, false, selection.FailureModel, true},
	}
	for _, test := range tests {
		got, failed := failureOf(test.status, test.prompt)
		if got != test.want || failed != test.failed {
			t.Errorf("status %d, with prompt %t: failure %d, %t, want %d, %t",
				test.status, test.prompt, got, failed, test.want, test.failed)
		}
	}
}
