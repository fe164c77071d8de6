package journal

// Step is something that the journal does to its disk.
type Step string

// The steps that can be disturbed.
const (
	StepWrite Step = "write" // a group of records is written to the log
	StepSync  Step = "sync"  // what was written becomes durable
	StepState Step = "state" // the state changes
)

// disturbed is a disk whose steps fail where disturb says so; nil never does.
func (d disk) disturbed(disturb func(Step) error) disk {
	if disturb == nil {
		return d
	}
	open := d.open
	d.open = func(path string, flag int) (appender, error) {
		file, err := open(path, flag)
		if err != nil {
			return nil, err
		}
		return disturbedFile{file, disturb}, nil
	}
	return d
}

// disturbedFile asks before it does what cannot be taken back.
type disturbedFile struct {
	appender
	disturb func(Step) error
}

func (f disturbedFile) WriteAt(b []byte, off int64) (int, error) {
	if err := f.disturb(StepWrite); err != nil {
		return 0, err
	}
	return f.appender.WriteAt(b, off)
}

func (f disturbedFile) Sync() error {
	if err := f.disturb(StepSync); err != nil {
		return err
	}
	return f.appender.Sync()
}
