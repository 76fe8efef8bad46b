import Cluster
package import Telemetry
import Tracing

/// What the tasks of a request have in common.
package enum RequestWork {
    /// Does a request's work under its name, by which the logs of all nodes that have a part in it have it.
    /// - Parameters:
    ///   - client: the client's place in a trace, if it told one.
    ///   - span: the request's own, below which its parts are recorded; nil where none is.
    package static func run<Value>(
        _ id: String, below client: TraceContext? = nil, _ span: RecordedSpan? = nil, _ work: () async -> Value
    ) async -> Value {
        await RequestTrace.$current.withValue(RequestTrace(id: id, place: span?.place ?? client)) {
            guard let span else { return await work() }
            return await ServiceContext.$current.withValue(span.context) { await work() }
        }
    }
}
