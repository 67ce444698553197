"""What a network plugin does with the NetworkPolicies of a small cluster: each pod's packets are filtered in its own network namespace.

A pod that a policy of a direction selects hears, or reaches, what a policy lets through and nothing else; what comes of a connection that
was let through passes. Whatever is at an address that is no pod's is a stranger, and is let through where a policy names no peers. IPv6, which no
pod has, is let through where a policy names neither. What is not here: ipBlock, matchExpressions, and ports with names or ends.
"""

import typing

from packet_rules import packet_rules

NAMESPACE = "default"
NAME_OF_NAMESPACE = "kubernetes.io/metadata.name"
TABLE = "policies"
FORGET = f"add table inet {TABLE}\ndelete table inet {TABLE}\n"  # there may be none
# key of a policy's rules, key of their peers, hook, what the other's address and the port are
# called
DIRECTIONS = {"Ingress": ("ingress", "from", "input", "iif", "saddr"), "Egress": ("egress", "to", "output", "oif", "daddr")}


class peer(typing.NamedTuple):
    """A pod, as policies see it."""

    address: str
    labels: dict
    namespace: str = NAMESPACE


def chosen(selector, labels):
    assert selector.keys() <= {"matchLabels"}, selector
    return selector.get("matchLabels", {}).items() <= labels.items()


def is_meant(term, one):
    """Whether a term of `from` or `to` means that pod."""
    assert term.keys() <= {"podSelector", "namespaceSelector"}, term
    is_there = chosen(term["namespaceSelector"], {NAME_OF_NAMESPACE: one.namespace}) if "namespaceSelector" in term else one.namespace == NAMESPACE
    return is_there and chosen(term.get("podSelector", {}), one.labels)


def ports_of(rule):
    """As conditions of nftables. One without words: all ports of all protocols."""
    if not rule.get("ports"):
        yield ""
    for one in rule.get("ports", []):
        assert one.keys() <= {"port", "protocol"} and isinstance(one.get("port", 0), int), one
        protocol = one.get("protocol", "TCP").lower()
        yield f"{protocol} dport {one['port']}" if "port" in one else f"meta l4proto {protocol}"


def accepted(rule, peers_key, address_key, peers):
    """@returns lines of nftables, for what that rule of a policy lets through"""
    assert rule.keys() <= {peers_key, "ports"}, rule
    others = ""
    if rule.get(peers_key):
        addresses = sorted({one.address for one in peers for term in rule[peers_key] if is_meant(term, one)})
        if not addresses:
            return
        others = f"ip {address_key} {{ {', '.join(addresses)} }}"
    for port in ports_of(rule):
        yield f"{others} {port} counter accept".strip()


def types_of(policy):
    return policy.get("policyTypes", ["Ingress", *(["Egress"] if "egress" in policy else [])])


def chains_for(one, policies, peers):
    """@param policies: specs of those of its namespace"""
    for direction, (rules_key, peers_key, hook, link, address_key) in DIRECTIONS.items():
        selecting = [policy for policy in policies if direction in types_of(policy) and chosen(policy["podSelector"], one.labels)]
        if not selecting:
            continue
        yield f"chain {rules_key} {{\ntype filter hook {hook} priority 0"
        yield f'{link} "lo" accept\nct state established,related accept'
        for line in sorted({line for policy in selecting for rule in policy.get(rules_key, []) for line in accepted(rule, peers_key, address_key, peers)}):
            yield line
        yield "counter drop\n}"


def rules_for(one, policies, peers):
    """@returns all rules for that pod, as text of nftables; "" where no policy selects it"""
    chains = "\n".join(chains_for(one, policies, peers))
    return f"table inet {TABLE} {{\n{chains}\n}}\n" if chains else ""


class network_policies:
    """Of a small cluster.
    @param hosts net_hosts, on which pods are"""

    def __init__(self, hosts):
        self.hosts, self.rules = hosts, packet_rules()
        self.enforced = {}  # host -> the rules that are there
        self.others = {}  # host -> a peer that is no pod of the cluster, such as one of another namespace

    def add_other(self, host, namespace, labels=()):
        """A pod of another namespace is at that address; policies that mean it do so from the next renew()."""
        self.others[host] = peer(self.hosts.address(host), dict(labels), namespace)

    def renew(self, objects, pods):
        """@param pods host -> labels of the pod there"""
        policies = [one["spec"] for (kind, _), one in objects.items() if kind == "NetworkPolicy"]
        own = {host: peer(self.hosts.address(host), labels) for host, labels in pods.items()}
        peers = [*own.values(), *self.others.values()]
        wanted = {host: rules_for(one, policies, peers) for host, one in own.items()}
        for host in wanted.keys() | self.enforced.keys():
            text = wanted.get(host, "")
            if text != self.enforced.get(host, ""):
                self.hosts.call_within(host, lambda text=text: self.rules.set(FORGET + text))
        self.enforced = {host: text for host, text in wanted.items() if text}
