import Cluster
import Directory
import PeerTransport
import WebServices

/// Everything that `serve` needs to run one node.
struct NodePlan: Sendable {
    var settings: NodeSettings
    var web: WebServerSettings
    var administratorSecret: String
    /// Shown to whoever started the node, once it serves.
    var greeting: String?
}

extension NodeSettings {
    /// One node of a cluster's configuration, with the files of its certificates.
    init(
        node: ClusterFile.Node, of file: ClusterFile, dataPath: String, listenHost: String, tls: PeerTLS
    ) {
        self.init(
            nodeID: NodeID(node.id), clusterID: file.name, dataPath: dataPath,
            nodes: file.nodes.map {
                ClusterMap.Node(id: $0.id, peerHost: $0.host, peerPort: $0.peerPort, clientURL: $0.clientURL)
            }, peerListenHost: listenHost, tls: tls)
        shardCount = file.shards
        replicasPerShard = file.replicas
    }
}
