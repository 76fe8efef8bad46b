import Foundation

/// Where a command writes what may be large: to a file, which is there once it is whole, or to standard output.
struct OutputFile {
    /// `-` is standard output.
    let path: String

    /// - Parameter body: writes to the file that it is given.
    /// - Throws: what `body` throws, after which there is no file; `CommandFailure` where it cannot be written.
    func write(_ body: (FileHandle) async throws -> Void) async throws {
        if path == "-" { return try await body(.standardOutput) }
        let draft = "\(path).part-\(UInt32.random(in: 0 ... .max))"
        guard FileManager.default.createFile(atPath: draft, contents: nil, attributes: [.posixPermissions: 0o600]),
            let file = FileHandle(forWritingAtPath: draft)
        else { throw CommandFailure("\(draft) cannot be written") }
        do {
            try await body(file)
            try file.close()
            guard rename(draft, path) == 0 else { throw CommandFailure("\(path) cannot be written") }
        } catch {
            try? FileManager.default.removeItem(atPath: draft)
            throw error
        }
    }
}
