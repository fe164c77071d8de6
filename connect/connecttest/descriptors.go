package connecttest

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

//go:embed dump_descriptors.py
var dumpDescriptors string

// SparkProtocol is the whole Spark Connect protocol as the pyspark of a Python
// environment ships it, package spark.connect: the truth to hold our own subset
// against, and the way to build a message that the subset does not have.
func SparkProtocol(ctx context.Context, python string) (*protoregistry.Files, error) {
	command := exec.CommandContext(ctx, python, "-c", dumpDescriptors)
	var complaint bytes.Buffer
	command.Stderr = &complaint
	dump, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("dump descriptors of pyspark with %s: %w: %s", python, err, complaint.Bytes())
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(dump, set); err != nil {
		return nil, fmt.Errorf("read descriptors of pyspark: %w", err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("link descriptors of pyspark: %w", err)
	}
	return files, nil
}

// SparkMessage finds a message of the protocol by its name, such as ExecutePlanRequest.
func SparkMessage(files *protoregistry.Files, name protoreflect.FullName) (protoreflect.MessageDescriptor, error) {
	found, err := files.FindDescriptorByName("spark.connect." + name)
	if err != nil {
		return nil, fmt.Errorf("find message %s: %w", name, err)
	}
	message, ok := found.(protoreflect.MessageDescriptor)
	if !ok {
		return nil, fmt.Errorf("find message %s: it is a %T", name, found)
	}
	return message, nil
}
