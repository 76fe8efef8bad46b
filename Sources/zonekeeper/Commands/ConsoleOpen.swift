import ArgumentParser
import Foundation
import Glibc
import RecordModel
import ServiceClient

struct ConsoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "console", abstract: "See and administer the cluster in a browser.",
        subcommands: [ConsoleOpenCommand.self])
}

struct ConsoleOpenCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "open", abstract: "Print a link that opens the console, signed in.",
        discussion: """
            The link works once, within a minute, with the role of the token's administrator. By the nodes' own token \
            the first administrator comes in, who then chooses a name and a password for the next time.
            """)

    @OptionGroup var options: ClientOptions

    @Flag(help: "Open it in the browser, too (xdg-open).")
    var browser = false

    func run(on connection: Connection) async throws {
        // A link that nobody learns of opens nothing.
        let response = try await connection.administer("POST", "console/links", body: .object([]), isRepeatable: true)
        let url = try response.json().text("url")
        try show(response, url)
        if browser { try Self.open(Self.page(to: url, in: Self.runtimeFolder)) }
    }

    /// Of this user alone where the system has one.
    private static var runtimeFolder: String {
        ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            ?? NSTemporaryDirectory()
    }

    /// Writes a page that leads to a link: a browser's arguments are shown to all users of the machine, so the link is
    /// in a file that only this one can read. It stays there, and is good for nothing after its minute.
    /// - Returns: the page's path.
    static func page(to url: String, in folder: String) throws -> String {
        let path = URL(filePath: folder).appending(path: "zonekeeper-console-\(getuid()).html").path
        let escaped = url.replacing("&", with: "&amp;").replacing("\"", with: "&quot;").replacing("<", with: "&lt;")
        try PrivateFile.replace(
            path,
            with: """
                <!DOCTYPE html>
                <meta charset="utf-8"><meta name="referrer" content="no-referrer">
                <meta http-equiv="refresh" content="0; url=\(escaped)">
                <title>Zonekeeper</title>
                <a href="\(escaped)">Open the console</a>

                """)
        return path
    }

    private static func open(_ path: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["xdg-open", path]
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        do { try process.run() } catch { throw CommandFailure("the browser cannot be opened: \(error)") }
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw CommandFailure("xdg-open opened no browser: copy the link into one within a minute")
        }
    }
}
