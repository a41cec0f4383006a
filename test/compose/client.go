package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// putBusybox and putCurl are for the images that examples/compose and deploy build on.
func putBusybox(ctx context.Context, _ io.Writer, t *tree) (string, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return "", fmt.Errorf("%w: install busybox (Debian, Ubuntu: apt-get install busybox-static)", err)
	}
	if err := t.program(path, "/usr/bin/busybox"); err != nil {
		return "", err
	}
	version, err := output(exec.CommandContext(ctx, path))
	first, _, _ := strings.Cut(version, "\n")
	return first, err
}

func putCurl(ctx context.Context, _ io.Writer, t *tree) (string, error) {
	if err := t.commands("sh", "curl"); err != nil {
		return "", err
	}
	version, err := output(exec.CommandContext(ctx, "curl", "--version"))
	first, _, _ := strings.Cut(version, "\n")
	return first, err
}
