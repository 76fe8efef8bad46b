import TestSupport
import Testing

/// What runs nodes and keeps the machine busy: one after another.
@Suite(.serialized)
enum ClusterSuites {
    /// Tests that kill nothing, cut nothing and set no limits of the whole cluster, on the nodes of `SharedCluster`.
    @Suite(.serialized, .sharedCluster)
    enum Shared {}
}

/// What runs nodes and mostly waits for them, for elections and restarts: one after another, beside `ClusterSuites`.
@Suite(.serialized)
enum WaitingClusterSuites {}

/// What stops, wipes, replaces or upgrades nodes: one after another, beside the others.
@Suite(.serialized)
enum RebuildingClusterSuites {}

/// The three nodes of `ClusterSuites.Shared`. They start when its first test asks for them, and stop after its last.
enum SharedCluster {
    // Tests of `ClusterSuites` run one after another.
    nonisolated(unsafe) private static var cluster: ProcessCluster?
    nonisolated(unsafe) private static var count = 0

    /// The nodes, with a container, a user and tokens that no other test has.
    static func tenant() async throws -> ProcessCluster {
        count += 1
        if let cluster { return try await ProcessCluster(sharing: cluster, number: count) }
        let nodes = try ProcessCluster()
        try await nodes.startAll()
        cluster = nodes
        return try await ProcessCluster(sharing: nodes, number: count)
    }

    /// Stops the nodes; each must still run, and must end well.
    fileprivate static func stop() {
        for fault in cluster?.stop() ?? [] { Issue.record("\(fault)") }
        cluster = nil
    }
}

/// Stops the shared nodes after the suite's last test.
struct SharedClusterTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await finishing(function) { SharedCluster.stop() }
    }
}

extension Trait where Self == SharedClusterTrait {
    static var sharedCluster: Self { Self() }
}
