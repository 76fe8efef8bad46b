import Foundation
import RecordModel

/// The nodes of a configuration, as processes of this machine.
struct LocalCluster {
    var layout: ClusterLayout

    private var processes: [NodeProcess] { layout.file.nodes.map { NodeProcess(node: $0, layout: layout) } }

    /// Starts the nodes that do not run, once all their ports are found to be free.
    /// - Returns: the processes started, by node id.
    func startMissing() throws(CommandFailure) -> [UInt64: Int32] {
        let missing = processes.filter { $0.pid == nil }
        for process in missing {
            for (key, port) in [("clientPort", process.node.clientPort), ("peerPort", process.node.peerPort)] {
                guard let problem = PortCheck.problem(host: process.node.host, port: port) else { continue }
                throw CommandFailure(
                    "port \(port) on \(process.node.host) \(problem). It is the \(key) of node \(process.node.id): stop what "
                        + "uses it, or change it in \(layout.path). No node was started")
            }
        }
        var started: [UInt64: Int32] = [:]
        for process in missing { started[process.node.id] = try process.start() }
        return started
    }

    /// Waits until every node is ready, and says how far it has come.
    /// - Throws: `CommandFailure` with the end of a node's log, when that node ends or the time is over.
    func awaitReady(_ started: [UInt64: Int32], timeoutSeconds: Int) async throws -> [NodeStatus] {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(timeoutSeconds)
        var progress = ProgressLine()
        while true {
            for process in processes {
                guard let pid = started[process.node.id], let how = DetachedProcess.end(of: pid) else { continue }
                progress.abandon()
                unlink(layout.pidFile(of: process.node))
                throw CommandFailure("node \(process.node.id) ended with \(how). Its log ends:\n\(process.logTail())")
            }
            let statuses = try await statuses()
            let ready = statuses.count { $0.state == .ready }
            if ready == statuses.count {
                progress.finish("\(ready) of \(statuses.count) nodes ready")
                return statuses
            }
            guard clock.now < end else {
                progress.abandon()
                let late = processes.filter { process in
                    statuses.contains { $0.node.id == process.node.id && $0.state != .ready }
                }
                let logs = late.map { "node \($0.node.id), log \(layout.log(of: $0.node)):\n\($0.logTail())" }
                throw CommandFailure(
                    "\(ready) of \(statuses.count) nodes are ready after \(timeoutSeconds) s.\n"
                        + logs.joined(separator: "\n"))
            }
            progress.show("waiting for nodes: \(ready) of \(statuses.count) ready")
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Stops the nodes that run.
    /// - Returns: the ids of those that did.
    /// - Throws: `CommandFailure` naming the nodes that have not stopped in time.
    func stop(timeoutSeconds: Int, isForced: Bool) async throws -> [UInt64] {
        let running = processes.compactMap { process in process.pid.map { (process: process, pid: $0) } }
        for (_, pid) in running { kill(pid, SIGTERM) }
        let clock = ContinuousClock()
        let end = clock.now + .seconds(timeoutSeconds)
        var progress = ProgressLine()
        var left = running
        var isKilled = false
        while true {
            left = left.filter { $0.process.isOurs($0.pid) }
            if left.isEmpty { break }
            if clock.now >= end {
                guard isForced, !isKilled else {
                    progress.abandon()
                    let ids = left.map { "\($0.process.node.id)" }.joined(separator: ", ")
                    throw CommandFailure(
                        "node \(ids) has not stopped within \(timeoutSeconds) s"
                            + (isForced ? ", not even killed" : ": wait, or kill it with --force"))
                }
                for (_, pid) in left { kill(pid, SIGKILL) }
                isKilled = true
                try await Task.sleep(for: .seconds(1))
                continue
            }
            progress.show("stopping: \(running.count - left.count) of \(running.count) nodes stopped")
            try await Task.sleep(for: .milliseconds(100))
        }
        for process in processes { unlink(layout.pidFile(of: process.node)) }
        if !running.isEmpty { progress.finish("\(running.count) of \(running.count) nodes stopped") }
        return running.map(\.process.node.id)
    }
}
