package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// composeFile is where the servers are written down.
const composeFile = "docker-compose.yml"

// A file is what docker-compose.yml says of the machine that it needs.
type file struct {
	Services map[string]service `yaml:"services"`
}

// A service is a server, in a container.
type service struct {
	Image    string   `yaml:"image"`
	Ports    []string `yaml:"ports"` // each HOST:PORT:PORT-IN-CONTAINER
	Profiles []string `yaml:"profiles"`
}

func readFile() (*file, error) {
	text, err := os.ReadFile(composeFile)
	if err != nil {
		return nil, fmt.Errorf("read what to start, in the root of the repository: %w", err)
	}
	f := &file{}
	if err := yaml.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("%s: %w", composeFile, err)
	}
	return f, nil
}

// names returns the names of the services that start with a profile, or without
// any if it is empty.
func (f *file) names(profile string) []string {
	var found []string
	for name, s := range f.Services {
		if len(s.Profiles) == 0 || slices.Contains(s.Profiles, profile) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// images returns the images of the services that start with a profile.
func (f *file) images(profile string) []string {
	var found []string
	for _, name := range f.names(profile) {
		found = append(found, f.Services[name].Image)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// addresses returns where on this machine a service listens, each as host:port.
func (s service) addresses() []string {
	found := make([]string, len(s.Ports))
	for i, port := range s.Ports {
		found[i] = port[:strings.LastIndexByte(port, ':')]
	}
	return found
}
