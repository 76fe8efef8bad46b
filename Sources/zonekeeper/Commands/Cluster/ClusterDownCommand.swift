import ArgumentParser

/// `zonekeeper cluster down`
struct ClusterDownCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "down", abstract: "Stop the nodes that `cluster up` started on this machine.")

    @OptionGroup var options: ConfigOptions

    @Flag(help: "Kill what does not stop. Nothing acknowledged is lost; the next start takes longer.")
    var force = false

    @Option(help: "How long to wait for the nodes, in seconds.")
    var timeout = 20

    func run() async throws {
        let stopped = try await LocalCluster(layout: try options.layout()).stop(
            timeoutSeconds: timeout, isForced: force)
        print(
            stopped.isEmpty ? "no node was running" : "stopped node \(stopped.map(String.init).joined(separator: ", "))"
        )
    }
}
