package connecttest

// Leftovers is what would fail a test if it ended now.
func (s *Server) Leftovers() int { return s.leftovers() }
