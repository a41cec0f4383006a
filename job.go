package election

import "github.com/electkv/election/internal/throttle"

// A job is work that a campaign does outside its mutex: it makes a request, for example. It may
// return a function that takes in the outcome, which is called with the mutex held.
type job func() (then func())

// start has a job done: by the goroutine that has just done another, if that has led to this
// one, or else by one of its own. It is called with mu held.
func (c *campaign) start(j job) {
	c.jobs++
	if c.handy && c.next == nil && !throttle.Crowded(c.store) {
		c.next = j
		return
	}
	go c.work(j)
}

// work does a job, and then one that this has led to, and so on: to wake another goroutine
// takes longer than most steps do. In a crowd each job has its own: those that wait for their
// turn have small stacks then.
func (c *campaign) work(j job) {
	for j != nil {
		j = c.after(j())
	}
}

// after takes in the outcome of a job, and returns a job that this has led to, if any.
func (c *campaign) after(then func()) (next job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if then != nil {
		c.handy = true
		then()
		c.handy = false
	}
	next, c.next = c.next, nil
	c.jobs--
	c.conclude()
	return next
}
