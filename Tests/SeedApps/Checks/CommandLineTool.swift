import Foundation

/// Runs other programs: the administrator's command line, and this program once more as another device.
enum CommandLineTool {
    struct Answer {
        let status: Int32
        let output: String
        let errors: String
    }

    /// Runs `zonekeeper`, which has to be in `PATH`, with the environment of this program and some changes; nil takes a
    /// variable away.
    static func zonekeeper(_ arguments: String..., changing changes: [String: String?] = [:]) throws -> Answer {
        try run(["zonekeeper"] + arguments, changes)
    }

    static func zonekeeper(_ arguments: [String]) throws -> Answer { try run(["zonekeeper"] + arguments, [:]) }

    /// Runs this program as a device with a folder of its own for preferences.
    static func device(_ arguments: String..., folder: URL, changing changes: [String: String?] = [:]) throws -> Answer
    {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return try run(
            [program, "device"] + arguments, changes.merging(["ZONEKEEPER_DATA_HOME": folder.path]) { $1 })
    }

    /// Runs those tests of the console that do a row, in a browser and against a node of their own.
    static func consoleTests(ofRow number: Int) throws -> Answer {
        try run(["scripts/test-console", "--seed-row", String(number)], [:])
    }

    private static func run(_ command: [String], _ changes: [String: String?]) throws -> Answer {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        var environment = ProcessInfo.processInfo.environment
        for (name, value) in changes { environment[name] = value }
        process.environment = environment
        // Files rather than pipes: a full pipe would stop the program that nobody reads from yet.
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let names = ["output", "errors"].map { folder.appendingPathComponent($0) }
        for name in names { try Data().write(to: name) }
        process.standardOutput = try FileHandle(forWritingTo: names[0])
        process.standardError = try FileHandle(forWritingTo: names[1])
        try process.run()
        process.waitUntilExit()
        return Answer(
            status: process.terminationStatus, output: try String(contentsOf: names[0], encoding: .utf8),
            errors: try String(contentsOf: names[1], encoding: .utf8))
    }
}
