package main

import (
	"context"
	"fmt"
	"strings"
)

// network is what Compose calls the network of the containers.
const network = projectName + "_default"

// removeNetwork removes the network of containers that are gone. An engine may keep it
// all the same: version 20.10 of Docker's sometimes counts a container as connected for
// as long as the engine runs. That harms nobody, as the next start uses the network.
func (p *project) removeNetwork(ctx context.Context) error {
	connected, err := docker(ctx, "network", "inspect", "--format={{range .Containers}}{{println .Name}}{{end}}", network)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(connected) {
		if _, err := docker(ctx, "container", "inspect", "--format={{.Id}}", name); err == nil {
			return fmt.Errorf("the container %s is connected to the network %s: stop it, or disconnect it (docker network disconnect %s %s)",
				name, network, network, name)
		}
		if _, err := docker(ctx, "network", "disconnect", "--force", network, name); err != nil {
			return err
		}
	}
	_, err = docker(ctx, "network", "rm", network)
	if err != nil && strings.Contains(err.Error(), "has active endpoints") {
		fmt.Fprintf(p.log, "the engine keeps the network %s, though no container is connected to it: the next start uses it, and a restart of the engine frees it\n", network)
		return nil
	}
	return err
}
