package testenv

// reservePort keeps a port by a socket that is bound and does not listen. Linux
// lets another socket with SO_REUSEADDR (Go and all three servers set it) bind
// and listen there all the same, but gives the port to nobody who asks for any
// free one, and refuses connections while no server listens.
func reservePort() (*port, error) {
	f, number, err := bindAny()
	if err != nil {
		return nil, err
	}
	return &port{number: number, bound: f}, nil
}
