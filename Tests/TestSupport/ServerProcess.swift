package import Foundation

/// A `zonekeeper serve` process of the binary under test.
package final class ServerProcess {
    /// Where its standard error goes.
    package let logPath: String
    private let child: ChildProcess

    /// The process's id.
    package var pid: Int32 { child.pid }
    /// Whether it has not ended.
    package var isRunning: Bool { child.isRunning }

    /// Starts `zonekeeper serve` with more arguments.
    /// - Parameters:
    ///   - environment: what it finds in its environment beside what this process has.
    ///   - program: another build's binary.
    /// - Throws: where the binary cannot be started.
    package init(
        arguments: [String], logPath: String, environment: [String: String] = [:], program: URL = binary
    ) throws {
        self.logPath = logPath
        if !FileManager.default.fileExists(atPath: logPath) {
            try require(FileManager.default.createFile(atPath: logPath, contents: nil), "cannot write \(logPath)")
        }
        let log = try FileHandle(forWritingTo: URL(filePath: logPath))
        try log.seekToEnd()
        child = try ChildProcess(
            [program.path, "serve"] + arguments, environment: environment, output: log, errors: log)
    }

    /// The binary beside the test bundle.
    package static let binary: URL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "zonekeeper")

    /// Ends the process without asking it, as a power cut of the node would.
    package func killNow() {
        signalKill()
        wait()
    }

    /// Waits for its end.
    /// - Returns: what it ended with; the signal's number where one ended it.
    @discardableResult
    package func wait() -> Int32 { child.wait() }

    /// Sends the signal without waiting, so that several processes end at the same moment.
    package func signalKill() { child.signal(SIGKILL) }

    /// Asks it to stop and waits for its end.
    package func stop() -> Int32 {
        child.signal(SIGTERM)
        return wait()
    }

    /// What it logged so far.
    package var log: String { (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? "" }

    /// Runs the binary to its end.
    package static func run(_ arguments: [String], environment: [String: String] = [:]) throws -> FinishedProgram {
        try FinishedProgram([binary.path] + arguments, environment: environment)
    }
}
