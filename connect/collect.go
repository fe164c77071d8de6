package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"sparkbridge/connect/sparkpb"
)

// errStream is why a stream cannot be collected.
var errStream = errors.New("a stream has no end to be read to: write it with WriteStream, and read what it has written")

// Collect reads the rows of a bounded frame, each as one JSON object in the form of Spark's
// to_json: a null is left out, a time is text, a decimal a number.
func (d *DataFrame) Collect(ctx context.Context) ([]json.RawMessage, error) {
	texts, err := d.Select("to_json(struct(*)) AS row").texts(ctx, "collect")
	rows := make([]json.RawMessage, 0, len(texts))
	for _, text := range texts {
		rows = append(rows, json.RawMessage(text))
	}
	return rows, err
}

// Show prints the first n rows of a bounded frame as a table.
func (d *DataFrame) Show(ctx context.Context, w io.Writer, n int) error {
	rows, err := rowCount("show", n)
	texts, err := d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_ShowString{ShowString: &sparkpb.ShowString{
		Input: d.relation, NumRows: rows, Truncate: showWidth,
	}}}, err).texts(ctx, "show")
	for _, text := range texts {
		if _, err := io.WriteString(w, text); err != nil {
			return fmt.Errorf("show: %w", err)
		}
	}
	return err
}

// showWidth is how wide Spark's clients let a column be.
const showWidth = 20

// texts reads rows of one column of text. Each batch is an Arrow IPC stream.
func (d *DataFrame) texts(ctx context.Context, op string) ([]string, error) {
	if d.err != nil {
		return nil, d.err
	}
	var texts []string
	var broken error
	err := d.s.perform(ctx, op, &sparkpb.Plan{OpType: &sparkpb.Plan_Root{Root: d.relation}}, func(frame *sparkpb.ExecutePlanResponse) {
		if batch := frame.GetArrowBatch(); batch != nil && broken == nil {
			texts, broken = appendTexts(texts, batch.GetData())
		}
	})
	if e, ok := errors.AsType[*Error](err); ok && e.ofStream() {
		return nil, fmt.Errorf("%s: %w", op, errStream)
	}
	if err == nil && broken != nil {
		err = fmt.Errorf("%s: read arrow batch: %w", op, broken)
	}
	return texts, err
}

// ofStream says that Spark was asked to compute a stream as if it had an end.
func (e *Error) ofStream() bool {
	return e.bySpark && strings.Contains(e.Message, "writeStream.start()")
}

func appendTexts(texts []string, data []byte) ([]string, error) {
	reader, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return texts, err
	}
	defer reader.Release()
	for reader.Next() {
		column, ok := reader.RecordBatch().Column(0).(*array.String)
		if !ok {
			return texts, fmt.Errorf("the column is %s, not text", reader.RecordBatch().Column(0).DataType())
		}
		for i := range column.Len() {
			texts = append(texts, column.Value(i))
		}
	}
	return texts, reader.Err()
}
