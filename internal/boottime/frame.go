package boottime

// A Frame names what readings of Now can be compared within: two readings in one frame
// are of one clock. Two frames may be of one clock all the same, and of one kernel:
// a container may have been given a boot id of its own. So a frame that is another
// proves nothing about the process that reads the clock there, not even that it has ended.
type Frame struct {
	Boot  string // of the host, as the container shows it
	Space string // the time namespace, if the system has them
}

// String returns the frame's name.
func (f Frame) String() string {
	if f.Space == "" {
		return f.Boot
	}
	return f.Boot + " " + f.Space
}
