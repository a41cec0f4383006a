//go:build unix && !linux

package testenv

// reservePort finds a port that is free now. Other systems than Linux do not let
// a server listen at a port that somebody else keeps.
func reservePort() (*port, error) {
	f, number, err := bindAny()
	if err != nil {
		return nil, err
	}
	return &port{number: number}, f.Close()
}
