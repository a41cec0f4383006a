package main

import (
	"context"
	"fmt"
	"net"
	"os"
)

func Example() {
	dir, err := os.MkdirTemp("", "election-peers-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println(run(context.Background(), dir, free(3)))
	// Unordered output:
	// member 1 leads
	// member 2 leads
	// member 3 leads
	// <nil>
}

// free returns addresses that nobody listens at.
func free(n int) []string {
	addrs := []string{}
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		defer listener.Close()
		addrs = append(addrs, listener.Addr().String())
	}
	return addrs
}
