package listener

import (
	"strconv"
	"time"

	"github.com/tidwall/gjson"
)

// observed turns rows of values beside their schema into objects by column.
func observed(metrics gjson.Result) string {
	if !metrics.IsObject() {
		return metrics.Raw
	}
	var out object
	metrics.ForEach(func(key, row gjson.Result) bool {
		out.add(key.Raw, rowByColumn(row))
		return true
	})
	return string(out.close())
}

// rowByColumn joins the values of a row with the names in its schema, in rows
// within rows too. What has another shape stays.
func rowByColumn(v gjson.Result) string {
	if v.IsArray() {
		return each(v, rowByColumn)
	}
	values, fields := v.Get("values"), v.Get("schema.fields")
	if !values.IsArray() || !fields.IsArray() {
		return v.Raw
	}
	columns := fields.Array()
	var out object
	for i, value := range values.Array() {
		if i < len(columns) {
			out.add(columns[i].Get("name").Raw, cell(value, columns[i].Get("type").Str))
		}
	}
	return string(out.close())
}

// cell writes one observed value. The serializer gives instants as epoch
// milliseconds, the bus as text in the session's time zone, which Spark does not
// tell: it is UTC here, as on most servers.
func cell(v gjson.Result, sparkType string) string {
	if v.Type == gjson.Number {
		switch at := time.UnixMilli(v.Int()).UTC(); sparkType {
		case "timestamp":
			return strconv.Quote(at.Format(time.DateTime))
		case "date":
			return strconv.Quote(at.Format(time.DateOnly))
		}
	}
	return rowByColumn(v)
}
