package stores

import "time"

// A Level says how much a finding matters.
type Level string

// OK promises what the documentation promises; Warn is a limit to know about;
// Fail means that elections do not work here.
const (
	OK   Level = "OK"
	Warn Level = "WARN"
	Fail Level = "FAIL"
)

// A Finding is one thing that was looked at.
type Finding struct {
	Level   Level  `json:"level"`
	Subject string `json:"subject"`
	Found   string `json:"found"`
	Why     string `json:"why,omitempty"`    // it matters
	Advice  string `json:"advice,omitempty"` // what would be right
}

// CallTime bounds each question that is asked to examine a store.
const CallTime = 5 * time.Second
