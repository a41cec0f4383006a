package election

import (
	"slices"
	"time"
)

const (
	// sayAgain is how long the log is silent about trouble that goes on.
	sayAgain = time.Minute

	// mostSaid is how many different troubles the log is told of in that time. When a store
	// is down, each of its connections may have an error of its own.
	mostSaid = 4
)

// A complaint is logged when it is new, and again if it goes on for long.
type complaint struct {
	said []said // within sayAgain
}

type said struct {
	text string
	at   time.Time
}

// due reports whether an error is to be logged now.
func (c *complaint) due(err error) bool {
	now, text := time.Now(), err.Error()
	c.said = slices.DeleteFunc(c.said, func(s said) bool { return now.Sub(s.at) >= sayAgain })
	if len(c.said) == mostSaid || slices.ContainsFunc(c.said, func(s said) bool { return s.text == text }) {
		return false
	}
	c.said = append(c.said, said{text, now})
	return true
}
