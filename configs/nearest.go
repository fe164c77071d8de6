package configs

import "strings"

// nearest returns the candidate that is a slip of the pen away from word, or "".
func nearest(word string, candidates []string) string {
	best, fewest := "", len(word)/3+2
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), candidate); d < fewest {
			best, fewest = candidate, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace between a and b
// (Levenshtein). Long words are not worth comparing.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
