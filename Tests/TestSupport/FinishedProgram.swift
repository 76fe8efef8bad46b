import Foundation

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
        // Files, as a full pipe would stop it.
        let (read, written, errors) = (try NamelessFile(input), try NamelessFile(), try NamelessFile())
        let child = try ChildProcess(
            words, environment: environment, input: read.handle, output: written.handle, errors: errors.handle)
        status = child.wait()
        output = try written.text()
        self.errors = try errors.text()
    }
}

/// A temporary file that nobody else can open.
private struct NamelessFile {
    let handle: FileHandle

    /// - Parameter text: what is read from it first.
    init(_ text: String = "") throws {
        var path = Array((NSTemporaryDirectory() + "XXXXXX").utf8CString)
        let descriptor = mkstemp(&path)
        try require(descriptor >= 0, "no temporary file: \(String(cString: strerror(errno)))")
        unlink(path)
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try handle.write(contentsOf: Data(text.utf8))
        try handle.seek(toOffset: 0)
    }

    /// All that is in it.
    func text() throws -> String {
        try handle.seek(toOffset: 0)
        return String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
    }
}
