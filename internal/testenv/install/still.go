package install

import "time"

// still is how often a build says that it goes on.
const still = 20 * time.Second

// every calls tell again and again, with the time since it was begun, until the function
// that it returns is called.
func every(d time.Duration, tell func(time.Duration)) (stop func()) {
	begun, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell(time.Since(begun).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}
