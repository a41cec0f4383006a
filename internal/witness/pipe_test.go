package witness_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

func TestWhatIsToldIsHeard(t *testing.T) {
	var pipe bytes.Buffer
	tell := witness.Tell(&pipe, func(err error) { require.NoError(t, err) })
	told := history.Event{At: 1, Who: "anna", Kind: history.Ended, Token: 7, Text: "two\nlines"}
	tell(told)
	tell(history.Event{Kind: history.Left})
	pipe.WriteString(`{"at":3,"kind":"elec`) // it is killed
	heard := []history.Event{}
	witness.Hear(&pipe, func(e history.Event) { heard = append(heard, e) })
	require.Len(t, heard, 2)
	require.Equal(t, told, heard[0])
	require.Equal(t, history.Left, heard[1].Kind)
	require.NotZero(t, heard[1].At)
}

func TestAWitnessThatIsNotHeardIsToldSo(t *testing.T) {
	in, out := io.Pipe()
	require.NoError(t, in.Close())
	var gone error
	witness.Tell(out, func(err error) { gone = err })(history.Event{Kind: history.Ready})
	require.ErrorIs(t, gone, io.ErrClosedPipe)
}
