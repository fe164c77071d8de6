package configs

import (
	"reflect"
	"regexp"

	"sparkbridge/sinks/redact"
)

var sparkTextType = reflect.TypeFor[SparkText]()

// shownText hides the credentials in SQL and in locations.
func shownText(text string) string {
	return redact.Text(sqlSecret.ReplaceAllString(text, "$1'"+masked+"'"))
}

// shownSetting hides a value whose key says that it is secret, and the credentials in
// any other.
func shownSetting(key, value string) string {
	if value == "" {
		return ""
	}
	if secretKey.MatchString(key) {
		return masked
	}
	return redact.Text(value)
}

// secretKey knows more names than credentials in texts have: here the whole value is at hand.
var secretKey = regexp.MustCompile(`(?i)password|passwd|passphrase|secret|token|credential|jaas|private|auth|signature|key(id)?$`)

// sqlSecret is a secret option in SQL, which needs no = before its value.
var sqlSecret = regexp.MustCompile(`(?i)([\w.-]*(?:password|passwd|passphrase|secret|token|credential|jaas|key)[\w.-]*["'` + "`" + `]?\s*=?\s*)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")`)
