package election

import "time"

// sayAgain is how long the log is silent about trouble that goes on.
const sayAgain = time.Minute

// A complaint is told when it is new, and again if it goes on for long.
type complaint struct {
	text string
	at   time.Time
}

// due reports whether an error is to be told now.
func (c *complaint) due(err error) bool {
	text := err.Error()
	if text == c.text && time.Since(c.at) < sayAgain {
		return false
	}
	c.text, c.at = text, time.Now()
	return true
}
