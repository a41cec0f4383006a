package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// demos returns a play for each server that is alone: "elect demo" on it.
func (p *project) demos(elect string) ([]play, error) {
	names := []string{"etcd", "consul", "redis", "postgres", "mariadb"}
	addresses, err := p.file.published(names...)
	if err != nil {
		return nil, err
	}
	urls := map[string]string{
		"etcd": "etcd://%s", "consul": "consul://%s?min-ttl=1s", "redis": "redis://%s",
		"postgres": "postgres://postgres@%s/postgres?sslmode=disable", "mariadb": "mysql://root@%s/election",
	}
	var plays []play
	for i, name := range names {
		url := fmt.Sprintf(urls[name], addresses[i])
		plays = append(plays, play{"elect demo --store " + url, func(ctx context.Context) (string, error) {
			out, err := output(exec.CommandContext(ctx, elect, "demo", "--store", url))
			if err != nil {
				return out + "\n", err
			}
			return out[strings.LastIndex(out, "\n\n")+2:] + "\n", nil // what was kept, without the timeline
		}})
	}
	return plays, nil
}
