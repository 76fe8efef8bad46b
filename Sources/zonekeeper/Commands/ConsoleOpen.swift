import ArgumentParser
import Foundation
import RecordModel
import ServiceClient

struct ConsoleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "console", abstract: "See and administer the cluster in a browser.",
        subcommands: [ConsoleOpenCommand.self])
}

struct ConsoleOpenCommand: ClientCommand {
    static let configuration = CommandConfiguration(
        commandName: "open",
        abstract: "Print a link that opens the console, signed in.",
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
        if browser { try Self.open(url) }
    }

    private static func open(_ url: String) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["xdg-open", url]
        (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
        do { try process.run() } catch { throw CommandFailure("the browser cannot be opened: \(error)") }
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw CommandFailure("xdg-open opened no browser: copy the link into one within a minute")
        }
    }
}
