package journal

const crashDirEnv = "JOURNAL_CRASH_DIR"

func crashChild(string) int { return 0 }
