// Package manifest reads the manifests of Kubernetes in deploy/kubernetes.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read returns the objects in a file. A field that Kubernetes does not know, or that is
// there twice, is an error.
func Read(path string) ([]runtime.Object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects := []runtime.Object{}
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		object, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%s, object %d: %w", path, len(objects)+1, err)
		}
		objects = append(objects, object)
	}
}

func decode(document []byte) (runtime.Object, error) {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	var object runtime.Object
	switch kind {
	case metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}:
		object = &appsv1.Deployment{}
	case metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}:
		object = &corev1.Secret{}
	default:
		return nil, fmt.Errorf("no type is known here for %s %s", kind.APIVersion, kind.Kind)
	}
	return object, yaml.UnmarshalStrict(document, object)
}
