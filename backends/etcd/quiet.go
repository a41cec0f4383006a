package etcdkv

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// Quiet returns the configuration of a client that logs as config says, but not that a
// request was cancelled by the context of its own caller:
//
//	client, err := clientv3.New(etcdkv.Quiet(clientv3.Config{Endpoints: endpoints}))
//
// An election often cancels requests, for example a read when a watch is no longer
// needed, and the client warns of each ("retrying of unary invoker failed … context
// canceled"). Everything else is logged as before: a deadline that has passed, and a
// cancellation that a server or a proxy has answered with.
//
// If config names no logger, the client's warnings and errors go to standard error
// as JSON, as they do by default.
func Quiet(config clientv3.Config) clientv3.Config {
	log := config.Logger
	var err error
	switch {
	case log != nil:
	case config.LogConfig != nil:
		log, err = config.LogConfig.Build()
	default:
		log, err = zap.NewProduction()
		log = log.Named("etcd-client")
	}
	if err != nil {
		return config // clientv3.New says what is wrong
	}
	config.Logger = log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return quiet{core} }))
	config.DialOptions = append([]grpc.DialOption{grpc.WithChainUnaryInterceptor(markCalledOff)}, config.DialOptions...)
	return config
}

// A calledOffError is the error of a request that its caller has called off.
type calledOffError struct{ error }

func (e calledOffError) Unwrap() error { return e.error }

// GRPCStatus lets the client see what it would have seen.
func (e calledOffError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// markCalledOff is the client's innermost layer: what it returns, the client logs.
func markCalledOff(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return calledOffError{err}
	}
	return err
}

// quiet is a core that leaves out what is about requests that were called off.
type quiet struct{ zapcore.Core }

// With keeps what is added to a logger quiet.
func (q quiet) With(fields []zapcore.Field) zapcore.Core { return quiet{q.Core.With(fields)} }

// Check lets Write see the fields of an entry.
func (q quiet) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if q.Enabled(entry.Level) {
		return checked.AddCore(entry, q)
	}
	return checked
}

// Write implements [zapcore.Core].
func (q quiet) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && errors.As(err, new(calledOffError)) {
			return nil
		}
	}
	if checked := q.Core.Check(entry, nil); checked != nil { // by the core's own rules, sampling among them
		checked.Write(fields...)
	}
	return nil
}
