package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ProgramOptions says which program to run.
type ProgramOptions struct {
	Path string // of the executable
	Args []string
	Env  []string  // os.Environ() when nil
	Dir  string    // required: its working directory; Dir/<name of the executable>.log gets its output
	Log  io.Writer // gets its output too; may be nil
}

// Program is a program that is no server of this package, such as the bridge itself, in a
// process that can be killed and started again like theirs, and ends with this one.
type Program struct{ process }

// RunProgram starts a program. It may not have done anything yet when RunProgram returns.
func RunProgram(ctx context.Context, options ProgramOptions) (*Program, error) {
	name := filepath.Base(options.Path)
	if options.Dir == "" {
		return nil, fmt.Errorf("start %s: %w", name, errors.New("ProgramOptions.Dir is empty"))
	}
	env := options.Env
	if env == nil {
		env = os.Environ()
	}
	program := &Program{}
	program.command = command{
		name:   name,
		path:   options.Path,
		args:   options.Args,
		env:    env,
		dir:    options.Dir,
		output: name + ".log",
		log:    cmp.Or[io.Writer](options.Log, io.Discard),
		ready:  func(context.Context) error { return nil },
	}
	if err := program.start(ctx); err != nil {
		return nil, err
	}
	return program, nil
}

// ExitCode is what the last run ended with: -1 if a signal ended it, or it has not ended.
func (p *Program) ExitCode() int {
	life := p.current()
	if life.alive() {
		return -1
	}
	return life.cmd.ProcessState.ExitCode()
}
