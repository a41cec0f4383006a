package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// textOf writes a value of the core as JSON, without what is zero in it. read returns the
// same value. Functions are left out.
func textOf(v any) json.RawMessage {
	text, err := json.Marshal(lean(reflect.ValueOf(v)))
	if err != nil {
		panic("trace: what the core is given always has a text: " + err.Error())
	}
	return text
}

// lean returns what JSON is to be made of.
func lean(v reflect.Value) any {
	switch v.Kind() {
	case reflect.String:
		return armour(v.String())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = lean(v.Index(i))
		}
		return list
	case reflect.Struct:
		fields := map[string]any{}
		for _, f := range reflect.VisibleFields(v.Type()) {
			value := v.FieldByIndex(f.Index)
			if !f.Anonymous && f.Type.Kind() != reflect.Func && !value.IsZero() {
				fields[f.Name] = lean(value)
			}
		}
		return fields
	}
	return v.Interface()
}

// read reads what textOf wrote into the zero value that v points to.
func read(text json.RawMessage, v any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(v); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return bare(reflect.ValueOf(v).Elem())
}

// bare takes the armour off all texts in a value.
func bare(v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		text, err := disarm(v.String())
		if err != nil {
			return err
		}
		v.SetString(text)
	case reflect.Slice:
		for i := range v.Len() {
			if err := bare(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if err := bare(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// armoured begins a text that JSON could not hold as it is.
const armoured = "\x00"

// armour returns a text that JSON holds: values are any bytes.
func armour(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, armoured) {
		return s
	}
	return armoured + base64.StdEncoding.EncodeToString([]byte(s))
}

func disarm(s string) (string, error) {
	s, ok := strings.CutPrefix(s, armoured)
	if !ok {
		return s, nil
	}
	text, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", fmt.Errorf("trace: a text: %w", err)
	}
	return string(text), nil
}
