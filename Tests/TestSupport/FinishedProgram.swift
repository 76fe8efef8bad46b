import Dispatch
package import Foundation
import Synchronization

/// A program that was run to its end.
package struct FinishedProgram: Sendable {
    /// What it ended with; the signal's number where one ended it.
    package var status: Int32
    /// What it wrote.
    package var output: String
    /// What it wrote to its standard error.
    package var errors: String

    /// All that it wrote.
    package var text: String { output + errors }

    /// Runs a program and waits for its end.
    /// - Parameters:
    ///   - words: the program, by its path or as `PATH` finds it, and its arguments.
    ///   - input: all that it can read.
    ///   - environment: what it finds in its environment beside what this process has.
    /// - Throws: `TestFailure` where there is no such program.
    package init(_ words: [String], input: String = "", environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = words
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (inputPipe, outputPipe, errorPipe) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input.isEmpty ? FileHandle.nullDevice : inputPipe
        process.standardOutput = outputPipe
        process.standardError = errorPipe
        let end = ProcessEnd(of: process)
        try process.run()
        // All at a time: a full pipe would stop the program.
        let errorBytes = Mutex(Data())
        let reading = DispatchGroup()
        DispatchQueue.global().async(group: reading) {
            let bytes = errorPipe.fileHandleForReading.readDataToEndOfFile()
            errorBytes.withLock { $0 = bytes }
        }
        if !input.isEmpty {
            // A program that does not read ends the pipe.
            signal(SIGPIPE, SIG_IGN)
            DispatchQueue.global().async(group: reading) {
                try? inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
                try? inputPipe.fileHandleForWriting.close()
            }
        }
        let outputBytes = outputPipe.fileHandleForReading.readDataToEndOfFile()
        reading.wait()
        end.wait()
        status = process.terminationStatus
        output = String(decoding: outputBytes, as: UTF8.self)
        errors = String(decoding: errorBytes.withLock { $0 }, as: UTF8.self)
        // So `env` says it.
        try require(status != 127, "\(words[0]) cannot be run: \(errors)")
    }
}

/// The end of a process, waited for without `waitUntilExit`, which keeps a processor busy.
package struct ProcessEnd: Sendable {
    private let isEnded = DispatchSemaphore(value: 0)

    /// - Parameter process: one that was not started yet.
    package init(of process: Process) {
        process.terminationHandler = { [isEnded] process in
            // It returns at once by now, and only then are the process and its files let go.
            process.waitUntilExit()
            isEnded.signal()
        }
    }

    /// Waits until the process has ended; any number of times.
    package func wait() {
        isEnded.wait()
        isEnded.signal()
    }
}
