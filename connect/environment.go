package connect

// RemoteFromEnvironment reads the connection string from SPARK_REMOTE, as Spark's
// clients do, and completes it by WithEnvironment. getenv is os.Getenv outside
// of tests.
func RemoteFromEnvironment(getenv func(string) string) (Remote, error) {
	s := getenv("SPARK_REMOTE")
	if s == "" {
		return Remote{}, &RemoteError{Part: "SPARK_REMOTE", Problem: "is not set", Next: "set it to sc://host:15002, or give the connection string"}
	}
	r, err := ParseRemote(s)
	if err != nil {
		return Remote{}, err
	}
	return r.WithEnvironment(getenv)
}

// WithEnvironment is the remote with what it does not say itself taken from the
// environment: the token from SPARK_CONNECT_AUTHENTICATE_TOKEN, the user from
// SPARK_USER.
func (r Remote) WithEnvironment(getenv func(string) string) (Remote, error) {
	if user := getenv("SPARK_USER"); r.UserID == "" && user != "" {
		if err := r.set("user_id", user); err != nil {
			return Remote{}, err
		}
	}
	if r.Token != "" {
		return r, nil
	}
	return r.WithToken(getenv("SPARK_CONNECT_AUTHENTICATE_TOKEN"))
}
